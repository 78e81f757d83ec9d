#include <algorithm>

#include "ops/gated_delta/reference.h"
#include "ops/rounding.h"

namespace strata {
namespace {

constexpr double u = kUnitRoundoff;
constexpr double kFlush = 1.3e-38;  // a decay below 2^-126 may count as 0
constexpr double kProducts = 1.01;  // products of errors

// The recursion of README.md, Error, for one head.
class HeadBound {
 public:
  // chunk 1: the recurrence; more: the chunked forms.
  HeadBound(int64_t dk, int64_t dv, int64_t chunk, int64_t rows)
      : dk_(static_cast<size_t>(dk)), dv_(static_cast<size_t>(dv)), s_(dk_ * dv_), error_(dv_) {
    const double n = static_cast<double>(dk), lanes = std::ceil(n / 16) + 5;
    const double sum = chunk == 1 ? n + 5 : n + static_cast<double>(std::min(chunk, rows)) + 8;
    key_ = (lanes / 2 + 5) * u;
    query_ = (lanes / 2 + 8) * u;
    delta_ = sum * u + (chunk == 1 ? key_ : 2 * key_);
    read_ = sum * u + query_ + (chunk == 1 ? 0 : key_);
    write_ = key_ + (chunk == 1 ? u : 7 * u);
    tiny_ = sum * kTiny;
  }

  double* state() { return s_.data(); }

  // The arm goes back to the state here: B = |S|.
  void anchor() {
    magnitude_.resize(s_.size());
    whole_.assign(dv_, 0.0);
    for (size_t i = 0; i < s_.size(); ++i) {
      magnitude_[i] = std::fabs(s_[i]);
      whole_[i % dv_] += s_[i] * s_[i];
    }
    for (double& x : whole_) x = std::sqrt(x);
  }

  // A row whose correction is given, without error.
  void replay(double decay, const std::vector<double>& k, const std::vector<double>& delta) {
    const double k_norm = norm(k);
    for (size_t j = 0; j < dv_; ++j) whole_[j] += k_norm * std::fabs(delta[j]);
    for (size_t i = 0; i < dk_; ++i)
      for (size_t j = 0; j < dv_; ++j) {
        s_[i * dv_ + j] = decay * s_[i * dv_ + j] + k[i] * delta[j];
        magnitude_[i * dv_ + j] = decay * magnitude_[i * dv_ + j] + std::fabs(k[i] * delta[j]);
      }
  }

  // Bounds of the outputs [dv] and, unless null, of the corrections [dv].
  void step(const DeltaToken& token, double* out, double* correction) {
    Sums before = decay(token), after{std::vector<double>(dv_), std::vector<double>(dv_), {}};
    const double k_norm = norm(token.k), q_norm = norm(token.q);
    std::vector<double> delta(dv_);
    for (size_t j = 0; j < dv_; ++j) {
      const double residual = token.v[j] - before.product[j];
      delta[j] = token.beta * residual;
      double& e = error_[j];
      e = token.decay * e + 6 * u * std::sqrt(before.squares[j]) + kFlush * whole_[j];
      const double local =
          token.beta * (delta_ * before.magnitude[j] + 3 * u * std::fabs(residual) + kFlush * k_norm * whole_[j]) +
          tiny_;
      if (correction != nullptr) correction[j] = kProducts * (local + token.beta * k_norm * e);
      e += k_norm * (local + write_ * std::fabs(delta[j]));
      whole_[j] += k_norm * std::fabs(delta[j]);
    }
    update(token, delta, after);
    for (size_t j = 0; j < dv_; ++j) {
      error_[j] += u * std::sqrt(after.squares[j]) + tiny_;
      out[j] = kProducts * (q_norm * (error_[j] + kFlush * whole_[j]) + read_ * after.magnitude[j] + tiny_);
    }
  }

  double error(size_t column) const { return kProducts * error_[column]; }
  double key() const { return kProducts * key_; }

 private:
  struct Sums {
    std::vector<double> squares, magnitude, product;  // per column: B², B |k| or B |q|, S k
  };

  static double norm(const std::vector<double>& x) {
    double sum = 0;
    for (double value : x) sum += value * value;
    return std::sqrt(sum);
  }

  Sums decay(const DeltaToken& token) {
    Sums sums{std::vector<double>(dv_), std::vector<double>(dv_), std::vector<double>(dv_)};
    for (size_t i = 0; i < dk_; ++i)
      for (size_t j = 0; j < dv_; ++j) {
        const double x = s_[i * dv_ + j] *= token.decay, b = magnitude_[i * dv_ + j] *= token.decay;
        sums.product[j] += x * token.k[i];
        sums.magnitude[j] += b * std::fabs(token.k[i]);
        sums.squares[j] += b * b;
      }
    return sums;
  }

  void update(const DeltaToken& token, const std::vector<double>& delta, Sums& sums) {
    for (size_t i = 0; i < dk_; ++i)
      for (size_t j = 0; j < dv_; ++j) {
        s_[i * dv_ + j] += token.k[i] * delta[j];
        const double b = magnitude_[i * dv_ + j] += std::fabs(token.k[i] * delta[j]);
        sums.magnitude[j] += b * std::fabs(token.q[i]);
        sums.squares[j] += b * b;
      }
  }

  size_t dk_, dv_;
  double key_, query_;   // relative errors of k^ and q^
  double delta_, read_;  // of the terms of a correction and of an output
  double write_;         // of the product k^ d
  double tiny_;
  std::vector<double> s_, magnitude_;  // [dk, dv]: S and B
  std::vector<double> error_, whole_;  // [dv]: E and Z
};

}  // namespace

void gated_delta_bound(const GatedDeltaArgs& args, int64_t chunk, double* out, double* state) {
  const int64_t rows = args.q.extent(0), dk = args.q.extent(2), heads = args.v.extent(1), dv = args.v.extent(2);
  for (int64_t h = 0; h < heads; ++h) {
    HeadBound bound(dk, dv, chunk, rows);
    read_state(args.state, h, bound.state());
    const auto store = [&] {
      for (int64_t i = 0; i < dk * dv; ++i) state[h * dk * dv + i] = bound.error(static_cast<size_t>(i % dv));
    };
    for (int64_t t = 0; t < rows; ++t) {
      if (t == args.stored) store();
      if (t % chunk == 0) bound.anchor();
      bound.step(delta_token(args, t, h), out + (t * heads + h) * dv, nullptr);
    }
    if (args.stored < 0 || args.stored == rows) store();
  }
}

void gated_delta_anchored_bound(const GatedDeltaAnchoredArgs& args, const GatedDeltaAnchoredValues& bounds) {
  const int64_t rows = args.q.extent(0), dk = args.q.extent(2), heads = args.v.extent(1), dv = args.v.extent(2);
  std::vector<double> key(static_cast<size_t>(dk)), delta(static_cast<size_t>(dv));
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t key_head = key_head_of(args.mapping, h, args.q.extent(1), heads);
    HeadBound bound(dk, dv, kDeltaChunk, kDeltaChunk);
    read_state(args.state, h, bound.state());
    bound.anchor();
    for (int64_t slot = 0; slot < args.first % kDeltaChunk; ++slot) {
      for (int64_t i = 0; i < dk; ++i) key[static_cast<size_t>(i)] = element(args.ring_k, key_head, slot, i);
      for (int64_t j = 0; j < dv; ++j) delta[static_cast<size_t>(j)] = element(args.ring_u, h, slot, j);
      bound.replay(std::exp(element(args.ring_g, h, slot)), key, delta);
    }
    for (int64_t t = 0; t < rows; ++t) {
      const int64_t slot = (args.first + t) % kDeltaChunk;
      const DeltaToken token = delta_token(args, t, h);
      bound.step(token, bounds.out + (t * heads + h) * dv, bounds.ring_u + (h * kDeltaChunk + slot) * dv);
      for (int64_t i = 0; i < dk; ++i)
        bounds.ring_k[(key_head * kDeltaChunk + slot) * dk + i] =
            bound.key() * std::fabs(token.k[static_cast<size_t>(i)]) + kTiny;
      if (slot < kDeltaChunk - 1) continue;
      for (int64_t i = 0; i < dk * dv; ++i) bounds.state[h * dk * dv + i] = bound.error(static_cast<size_t>(i % dv));
      bound.anchor();
    }
  }
}

void gated_delta_gates_bound(const GatedDeltaGatesArgs& args, double* g, double* beta) {
  const int64_t rows = args.alpha.extent(0), heads = args.alpha.extent(1);
  gated_delta_gates_oracle(args, g, beta);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      double &g_bound = g[t * heads + h], &beta_bound = beta[t * heads + h];
      const double x = element(args.alpha, t, h) + element(args.dt_bias, h);
      const double form = std::fabs(x - 20) < 1e-4 ? std::exp(-20.0) : 0;  // softplus changes its form there
      g_bound = std::fabs(element(args.a, h)) * (u * std::fabs(x) + form) + 2 * u * std::fabs(g_bound) + kTiny;
      beta_bound = 6.06 * u * beta_bound + 1.2e-38;
    }
}

}  // namespace strata
