#include "text/template.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace strata::text {

struct Template::Impl {
  TemplateLimits limits;
  jinja::Tree tree;
};

Template::Template(std::string_view source, const TemplateLimits& limits)
    : impl_(std::make_unique<Impl>(Impl{limits, jinja::parse_template(source, limits)})) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

RenderResult Template::render(const jinja::Value& context, std::optional<int64_t> now) const {
  if (!context.is(jinja::Value::Kind::Map)) {
    throw Error(ErrorKind::Argument, "the variables of a template must be a mapping", "template");
  }
  const int64_t seconds = now ? *now : static_cast<int64_t>(std::time(nullptr));
  return jinja::Evaluator(impl_->tree, impl_->limits, seconds).render(context);
}

bool Template::mentions(std::string_view name) const {
  const auto& symbols = impl_->tree.symbols;
  const auto found = std::find(symbols.begin(), symbols.end(), name);
  return found != symbols.end() && impl_->tree.read[static_cast<size_t>(found - symbols.begin())];
}

}  // namespace strata::text
