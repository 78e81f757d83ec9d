"""Small templates, one per feature and corner: the variables are DATA. record_templates.py records what Jinja2 makes of them."""

DATA = {
    "s": "a,b,,c",
    "word": "Hello",
    "pad": "  \t x y \n",
    "wide": "é中🙂z",
    "empty": "",
    "n": 7,
    "neg": -7,
    "f": 2.5,
    "yes": True,
    "no": False,
    "nil": None,
    "list": [3, 1, 2],
    "strs": ["b", "A", "c"],
    "nested": [[1, "x"], [2, "y"]],
    "none_list": [None, 0, "", "x", False, 5],
    "map": {"b": 1, "a": "two", "items": "key", "_x": "under"},
    "users": [{"name": "Zoe", "age": 3, "a": {"b": [1, 2]}}, {"name": "ann", "age": 1}, {"name": "Bob", "age": 2}],
    "quote": "it's",
    "both": "it's \"x\"",
    "control": "a\n\r\t\\\x00\x7f\x1f\u200b\xad\u2028/<>&",
    "emptymap": {},
}

PRINTS = """
{{ word }}|{{ missing }}|{{ nil }}|{{ yes }}|{{ no }}|{{ n }}|{{ f }}
{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789.125 }} {{ 1e-4 }} {{ 0.00001 }} {{ 1e300 }} {{ -0.0 }} {{ 0.1 + 0.2 }}
{{ list }} {{ strs }} {{ nested }} {{ map }} {{ emptymap }} {{ [] }} {{ (1,) }} {{ (1, 'a') }} {{ () }}
{{ [quote, both, control, wide, 'é', none, true, 1.5] }}
{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ neg // 2 }} {{ neg % 3 }} {{ 7 % neg }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 7 / 0.5 }} {{ true + 1 }} {{ 2 * true }} {{ 1 - -1 }} {{ +3 }} {{ - 3 }} {{ 10 // 3.0 }}
{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }} {{ 1_000 }} {{ 0x1F }} {{ 0o17 }} {{ 0b11 }} {{ 00 }}
{{ 'a' 'b' "c" }} {{ 'a' ~ 1 ~ none ~ missing ~ true ~ 1.5 ~ [1] }} {{ 'ab' * 3 }} {{ 2 * 'ab' }} {{ 'x' * 0 }} {{ 'x' * -1 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }}
{{ 'a' + 'b' + 'c' }} {{ 1 ~ (2 + 3) }} {{ 'a' ~ 'b' == 'ab' }}
{{ 1 == 1.0 }} {{ 1 == true }} {{ 0 == false }} {{ '1' == 1 }} {{ none == false }} {{ [1] == [1.0] }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1} }} {{ missing == missing2 }} {{ 'a' != 'b' }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 2 >= 2 }} {{ 1 <= 0.5 }} {{ 3 > 2 }} {{ 1 == 1 == 1 }} {{ 'B' < 'a' }} {{ true < 2 }}
{{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }}
{{ 'a' in 'cat' }} {{ 'x' not in 'cat' }} {{ 1 in [1, 2] }} {{ 'b' in map }} {{ 'zz' in map }} {{ 1 in map }} {{ 'x' in missing }} {{ '' in 'a' }} {{ none in [none] }} {{ 1.0 in [1] }}
{{ not yes }} {{ not missing }} {{ not '' }} {{ not [] }} {{ not 0 }} {{ not 0.0 }} {{ not nil }} {{ not emptymap }} {{ not 'a' }} {{ not not 1 }}
{{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ '' or none or [] }} {{ 1 or missing.x }} {{ 0 and missing.x }} {{ 1 and 2 or 3 }} {{ not 1 == 2 }} {{ not 1 in [2] }}
{{ 'a' if yes else 'b' }} {{ 'a' if no else 'b' }} {{ 'a' if no }} {{ 'a' if no else 'b' if no else 'c' }} {{ ('a' if no) is defined }}
{{ word[0] }} {{ word[-1] }} {{ word[9] }} {{ word[1:3] }} {{ word[::-1] }} {{ word[::2] }} {{ word[-3:] }} {{ word[:-1] }} {{ word[5:2] }} {{ word[3:1:-1] }} {{ word[-100:100] }} {{ word[10:] }}
{{ wide }} {{ wide[0] }} {{ wide[2] }} {{ wide[-1] }} {{ wide[1:3] }} {{ wide[::-1] }} {{ wide | length }}
{{ list[0] }} {{ list[-1] }} {{ list[5] }} {{ list[1:] }} {{ list[::-1] }} {{ list[:1] }} {{ list[::2] }} {{ list[-2:] }} {{ list[true] }} {{ list.0 }} {{ nested.1.0 }} {{ nested[0][1] }} {{ list[3:0:-1] }} {{ list['x'] }} {{ list[1.0] }}
{{ map.b }} {{ map['a'] }} {{ map.zz }} {{ map['items'] }} {{ map['_x'] }} {{ map[1] }} {{ map['get']('b') }} {{ map.get('b') }} {{ map.get('zz') }} {{ map.get('zz', 5) }} {{ map.get(none, 1) }}
{{ users[0].name }} {{ users[0]['a'].b[1] }} {{ users[-1].name }} {{ users[0].zz }}
{{ map.items() | list }} {{ map.keys() | list }} {{ map.values() | list }} {{ map | items | list }} {{ map | list }} {{ map | length }} {{ missing | items | list }}
{{ map.items is defined }} {{ map.items is mapping }} {{ map.items.type is defined }} {{ 'x' if map.items }}
{{ nil.foo is defined }} {{ n.foo is defined }} {{ word.foo is defined }} {{ nil['a'] is defined }} {{ n[0] is defined }}
{{ s.split(',') }} {{ s.split(',', 1) }} {{ s.split(',', maxsplit=2) }} {{ s.split('zz') }} {{ ' a  b c '.split() }} {{ ' a  b c '.split(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a'.split(sep='b') }} {{ 'a b c '.split(none, 0) }}
{{ pad.strip() ~ '|' ~ pad.lstrip() ~ '|' ~ pad.rstrip() ~ '|' }} {{ 'xxhixx'.strip('x') }} {{ 'xyhiyx'.strip('xy') }} {{ 'xyhi'.lstrip('yx') }} {{ 'hi\\n\\n'.rstrip('\\n') }}| {{ 'ééaé'.strip('é') }} {{ '\\u3000a\\x1c'.strip() }} {{ 'abc'.strip('') }} {{ 'abc'.strip(none) }}
{{ word.startswith('He') }} {{ word.startswith('he') }} {{ word.endswith('lo') }} {{ word.startswith(('x', 'H')) }} {{ word.endswith(('x',)) }} {{ ''.startswith('') }}
{{ 'aaa'.replace('a', 'b') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'abc'.replace('', '-') }} {{ 'é中'.replace('', '-') }} {{ ''.replace('', 'x') }} {{ 'aaaa'.replace('aa', 'b') }} {{ 'abc'.replace('', '-', 2) }} {{ 'abc'.replace('x', 'y') }} {{ 'abc'.replace('b', '') }}
{{ word.upper() }} {{ word.lower() }} {{ word | upper }} {{ word | lower }} {{ 5 | upper }} {{ missing | upper }}
{{ word | length }} {{ list | length }} {{ map | length }} {{ missing | length }} {{ '' | length }}
{{ pad | trim ~ '|' }} {{ 'xax' | trim('x') }} {{ 5 | trim }} {{ missing | trim }} {{ nil | trim }}
{{ strs | join }} {{ strs | join(', ') }} {{ users | join('/', attribute='name') }} {{ [1, none, 'a', true] | join('-') }} {{ [] | join(',') }} {{ 'abc' | join('-') }} {{ missing | join(',') }} {{ map | join(',') }} {{ strs | join(1) }}
{{ 1 | string + 'a' }} {{ none | string }} {{ list | string }} {{ 'a' | safe }} {{ 5 | safe }} {{ true | string }} {{ missing | string }}
{{ missing | default('d') }} {{ missing | default }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ nil | default('d') }} {{ nil | default('d', boolean=true) }} {{ map.zz | default('d') }} {{ 0 | default(5, true) }} {{ missing | default(default_value=1) }}
{{ list | first }} {{ list | last }} {{ [] | first }} {{ [] | last is defined }} {{ 'abc' | first }} {{ 'abc' | last }} {{ map | first }} {{ map.values() | first }}
{{ 'abc' | list }} {{ (1, 2) | list }} {{ map | list }} {{ missing | list }} {{ range(3) | list }}
{{ none_list | select | list }} {{ none_list | reject | list }} {{ none_list | select('string') | list }} {{ none_list | reject('none') | list }} {{ list | select('equalto', 2) | list }} {{ list | select('>', 1) | list }} {{ list | select('in', [1, 2]) | list }} {{ none_list | select('defined') | list }}
{{ users | selectattr('age', 'equalto', 2) | map(attribute='name') | list }} {{ users | selectattr('a') | list | length }} {{ users[:1] | selectattr('a.b', 'defined') | map(attribute='name') | list }} {{ users | selectattr('age', 'gt', 1) | map(attribute='age') | list }} {{ users | selectattr('name', 'in', ['Bob']) | list | length }} {{ users | selectattr('zz', 'undefined') | list | length }}
{{ users | map(attribute='name') | list }} {{ users | map(attribute='zz', default='-') | list }} {{ strs | map('lower') | list }} {{ strs | map('replace', 'A', 'Q') | join }} {{ nested | map('first') | list }} {{ users[:1] | map(attribute='a.b.1') | list | first }} {{ strs | map('upper') | map('length') | list }} {{ [1, 2] | map('string') | list }} {{ nested | map(attribute=1) | list }}
{{ '12' | int }} {{ ' 12 ' | int }} {{ '1.9' | int }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ 3.9 | int }} {{ -3.9 | int }} {{ true | int }} {{ none | int }} {{ '0x1F' | int(base=16) }} {{ 'ff' | int(0, 16) }} {{ '-5' | int }} {{ '+5' | int }} {{ '1_000' | int }} {{ '' | int }} {{ [] | int(3) }} {{ '1e3' | int }} {{ '--5' | int }}
{{ list | sort }} {{ strs | sort }} {{ strs | sort(case_sensitive=true) }} {{ list | sort(reverse=true) }} {{ users | sort(attribute='age') | map(attribute='name') | list }} {{ users | sort(attribute='name') | map(attribute='name') | list }} {{ 'bca' | sort }} {{ [[2, 1], [1, 2]] | sort }} {{ [1.5, 1, true] | sort }} {{ [] | sort }} {{ map | sort }}
{{ 'a-b' | replace('-', '_') }} {{ 'aaa' | replace('a', 'b', 1) }} {{ 5 | replace('5', 6) }} {{ [1] | replace('1', '2') }}
{{ list | tojson }} {{ map | tojson }} {{ none | tojson }} {{ true | tojson }} {{ 1.0 | tojson }} {{ 1e16 | tojson }} {{ control | tojson }} {{ wide | tojson }} {{ both | tojson }} {{ (1, 2) | tojson }} {{ [] | tojson }} {{ {} | tojson }} {{ [[], {}] | tojson }} {{ 'a' | tojson }}
{{ users | tojson(indent=2) }}
{{ [[], {}, [1, [2]], {'a': {}}] | tojson(indent=4) }}|{{ [1, {'a': 2}] | tojson(indent=0) }}|{{ [1] | tojson(indent='--') }}
{{ {'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':')) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ wide | tojson(ensure_ascii=true) }} {{ {'é': '\\x7f'} | tojson(true) }} {{ [1, 2] | tojson(indent=1, separators=(', ', '=')) }}
{{ missing is defined }} {{ n is defined }} {{ nil is defined }} {{ missing is undefined }} {{ nil is none }} {{ n is none }} {{ n is not none }} {{ not n is none }}
{{ word is string }} {{ n is string }} {{ map is mapping }} {{ list is mapping }} {{ list is sequence }} {{ word is sequence }} {{ map is sequence }} {{ n is sequence }} {{ missing is sequence }} {{ (1,) is sequence }} {{ nil is sequence }}
{{ list is iterable }} {{ word is iterable }} {{ map is iterable }} {{ n is iterable }} {{ missing is iterable }} {{ nil is iterable }}
{{ n is number }} {{ f is number }} {{ yes is number }} {{ word is number }} {{ yes is boolean }} {{ n is boolean }} {{ yes is true }} {{ no is false }} {{ 1 is true }} {{ 0 is false }} {{ no is true }}
{{ 1 is in [1] }} {{ 1 is not in [1] }} {{ 'a' is in 'abc' }} {{ 1 is eq 1 }} {{ 1 is eq(2) }} {{ 2 is gt 1 }} {{ 1 is ne 1 }} {{ 'a' is equalto 'a' }} {{ 3 is lt(4) }} {{ 1 is le 1 }} {{ 'x' is in map }}
{{ 1 is defined and 2 is defined }} {{ 1 if x is defined else 2 }} {{ word is string and word | length > 3 }} {{ (n is defined) == true }} {{ n + 1 is number }}
{{ range(5) | list }} {{ range(2, 5) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }} {{ range(3)[1] }} {{ range(5) | length }}
{{ {'a': 1, 'b': [2]}.b }} {{ {'a': 1, 'a': 2} }} {{ {'a': 1,}['a'] }} {{ [1, 2,] }} {{ {} }} {{ {'x': {'y': {'z': 1}}}.x.y.z }}
{{ 'tab\\there' }} {{ 'nl\\nx' }} {{ 'q\\'q' }} {{ "d\\"d" }} {{ 'bs\\\\' }} {{ 'u\\u00e9' }} {{ 'x\\x41' }} {{ 'o\\101' }} {{ 'U\\U0001F642' }} {{ 'k\\q' }} {{ 'a\\
b' }} {{ 'nul\\0x' }}
{{ 'a,b' . split ( ',' ) [ 1 ] }} {{ word.lower().upper()[0] }} {{ (word ~ 'x').upper() }} {{ [word][0].lower() }}
{{ -n | string }} {{ -1.5 | string }} {{ (-5) | string }} {{ - n }} {{ 1 - 1 }} {{ 1-1 }} {{-n}} {{+n}}
{{ '%' }} {{ '}}' }} {{ "{%" }} {{ {'a': {'b': 1}}['a']['b'] }} {{ {'a': {}} }}
{{ true }} {{ True }} {{ false }} {{ False }} {{ none }} {{ None }}
{{ word|replace('l','L')|upper|lower|length }} {{ (list|first) + 1 }} {{ list | length > 2 }} {{ 'x' ~ list | length }}
{{ namespace(a=1).a }} {{ namespace(a=1).b is defined }} {{ namespace({'q': 2}).q }} {{ namespace is defined }} {{ range is defined }} {{ strftime_now is defined }} {{ raise_exception is defined }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %b %B %a %A %j %y %I %p %%') }} {{ strftime_now('%d %B %Y') }} {{ strftime_now('%-d %-m') }} {{ strftime_now('é') }} {{ strftime_now('%F %T') }} {{ strftime_now('%e') }}
{{ 1, 2 }} {{ (1, 2)[0] }} {{ ((1, 2), 3) }}
{{ [1, [2, {'a': (3, none)}]] }} {{ {'k': 'it\\'s'} }} {{ ['\\u200b', '\\xa0', '\\n', '\\x7f', '\\ue000'] }}
{{ missing ~ 'x' }} {{ [missing] | length }} {{ missing if missing is defined else 'none' }} {{ missing or 'fallback' }}
{{ 'é'.upper() == 'é' or true }} {{ 'ABC' | lower | first }}
"""

BLOCKS = [
    "{% if yes %}a{% endif %}{% if no %}b{% else %}c{% endif %}{% if no %}d{% elif yes %}e{% else %}f{% endif %}",
    "{% if no %}1{% elif no %}2{% elif n == 7 %}3{% else %}4{% endif %}",
    "{% for x in list %}{{ x }},{% endfor %}",
    "{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in list %}[{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}]{% endfor %}",
    "{% for x in list %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }} {% endfor %}",
    "{% for x in list if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}",
    "{% for x in list if x > 10 %}a{% else %}none{% endfor %}",
    "{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in map | items %}{{ k }}{% endfor %}{% for k in map %}{{ k }}{% endfor %}",
    "{% for (a, b) in nested %}{{ a }}{{ b }}{% endfor %}",
    "{% for c in 'é中x' %}{{ c }}.{% endfor %}{% for x in missing %}a{% else %}b{% endfor %}{% for x in [] %}a{% endfor %}",
    "{% for x in list %}{% for y in strs %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in list %}{% set outer = loop %}{% for y in strs %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in range(3) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}{% for x in list[::-1] %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in list %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% if no %}{% set z = 2 %}{% endif %}{{ z is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}{% set (p, q) = [8, 9] %}{{ p }}{{ q }}",
    "{% set ns = namespace(count=0, found=false) %}{% for x in list %}{% if x == 2 %}{% set ns.found = true %}{% endif %}{% set ns.count = ns.count + x %}{% endfor %}{{ ns.count }}{{ ns.found }}",
    "{% set ns = namespace() %}{% set ns.x = [] %}{% for i in range(4) %}{% set ns.x = ns.x + [i * i] %}{% endfor %}{{ ns.x }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c='z') }} {{ m(b=5, a=4) }} {{ m() }}",
    "{% macro m(a, b=a ~ '!') %}{{ b }}{% endmacro %}{{ m('x') }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}",
    "{% macro m() %}{{ x is defined }}{% endmacro %}{% for x in list %}{{ m() }}{% endfor %}",
    "{% macro m(x) %}{% set x = x + 1 %}{{ x }}{% endmacro %}{% set x = 10 %}{{ m(1) }}{{ x }}",
    "{% macro m() %}  text\n{% endmacro %}[{{ m() }}]{{ m() | trim }}{{ m() is string }}",
    "{% macro m(l) %}{% for x in l %}{{ loop.index }}{% if x is iterable and x is not string %}({{ m(x) }}){% endif %}{% endfor %}{% endmacro %}{{ m([1, [2, [3]], 4]) }}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{%- macro m(x) -%}\n  {{ x }}\n{%- endmacro -%}\n{{ m(1) }}",
    "{% set loop = 5 %}{{ loop }}",
    "{% for x in list %}{% else %}z{% endfor %}y",
    "{% for x in list %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for m in users if m.age > 1 %}{{ m.name }}{{ loop.previtem.name if loop.previtem }} {% endfor %}",
    "{% for x in list %}{{ loop.index is defined }}{{ loop is iterable }}{% endfor %}{{ loop is defined }}",
    "a{# comment #}b{#- c -#}  d {# multi\nline #}\ne",
    "  {% if yes %}\n  x\n  {% endif %}\ny",
    "x {% if yes %} y {% endif %} z\n",
    "a\n  {%- if yes %}  b  {%- endif -%}  \n c",
    "a\n  {%+ if yes %}b{% endif +%}\nc",
    "a\n   {{ 1 }}\n   {{- 2 -}}\n   b\n",
    "a\n   {{+ 1 }}\n",
    "{% if yes -%}   a   {%- endif %}\n\nb",
    "{% if yes %}\n\nb{% endif %}\n\n\n",
    "{# c #}\nx\n   {# d #}   \ny\n{#+ e +#}\nz",
    "line\r\nnext\rlast\r\n",
    "a\n\n",
    "",
    "\n",
    "{{ 'x' }}\n",
    "{% if yes %}\n{% endif %}\n",
    "  {% set x = 1 %}  \n  {{ x }}",
    "\t{% for x in list %}\t\n\t{{ x }}\n\t{% endfor %}\t\nend",
    "{%if yes%}a{%endif%}{{n}}{{ n}}{{n }}",
    "{% if yes %}{{ '{{' }}{% endif %} } }} %} #} { {",
    "{{ {'a': {'b': {}}} }}",
    "{% set d = {'k': [1, 2, {'z': none}]} %}{{ d.k[2].z }}{{ d | tojson }}",
    "{%- for x in list -%} {{ x }} {%- endfor -%}",
    "\u3000{%- if yes %}a{% endif -%}\u3000\u2028b",
    "{% set x = 'a' if yes else 'b' %}{{ x }}{% set y = x ~ x %}{{ y }}",
    "{% for i in range(3) %}{% for j in range(2) %}{% if i == 1 %}{{ i }}{{ j }}{% endif %}{% endfor %}{% endfor %}",
    "{% set messages = users[1:] %}{% for m in messages %}{{ m.name }}{% endfor %}",
    "{% if missing %}a{% elif not missing %}b{% endif %}{% if missing is defined and missing.x %}a{% endif %}",
    "{% if 'a' in map and map.a is string and map['a']|length == 3 %}ok{% endif %}",
    "{% set content = 'x</think>y' %}{{ content.split('</think>')[-1].lstrip('\\n') }}|{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1] }}",
]

FAILS = [
    "{{ missing.x }}", "{{ missing['x'] }}", "{{ missing[0] }}", "{{ map.zz.y }}", "{{ users[9].name }}", "{{ nil.a.b }}",
    "{{ missing + 1 }}", "{{ 'a' + 1 }}", "{{ 1 ~ 2 + 3 }}", "{{ users | map(attribute='a.b') | list }}", "{% macro m() %}x{% endmacro m %}", "{{ 1 + 'a' }}", "{{ none + 'a' }}", "{{ 'a' + missing }}", "{{ [1] + (2,) }}",
    "{{ -'a' }}", "{{ 'a' - 'b' }}", "{{ {} + {} }}", "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1.0 / 0 }}", "{{ 0 ** -1 }}",
    "{{ 'a' < 1 }}", "{{ none < 1 }}", "{{ [1] < ['a'] }}", "{{ missing < 1 }}", "{{ 1 in 1 }}", "{{ 1 in 'a' }}", "{{ 'a' in none }}", "{{ 1 in 5 }}",
    "{{ missing() }}", "{{ n() }}", "{{ word.foo() }}", "{{ none | length }}", "{{ 5 | length }}", "{{ 5 | list }}", "{{ none | join }}",
    "{{ missing | tojson }}", "{{ [missing] | tojson }}", "{{ 5 | items | list }}", "{{ [2, 'a'] | sort }}", "{{ 5 | first }}",
    "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}",
    "{% set a, b = 1 %}", "{% set n.x = 1 %}", "{% set zz.x = 1 %}", "{{ 'a'.split('') }}", "{{ word.startswith(1) }}", "{{ word.replace('a') }}",
    "{{ range() }}", "{{ range(1, 2, 0) }}", "{{ range('a') }}", "{{ namespace(1) }}", "{{ raise_exception('boom ' ~ n) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{{ 'x' | nofilter }}", "{{ 'x' is notest }}", "{% unknown %}", "{% if %}{% endif %}", "{% if yes %}", "{% endif %}", "{% for x in list %}",
    "{{ 1 +", "{{ ", "{% if yes", "{# ", "{{ (1 }}", "{{ 1) }}", "{{ [1 }}", "{{ 'a }}", "{{ a b }}", "{{ a.'b' }}", "{{ | }}", "{{ 1 ** }}", "{{}}",
    "{% set %}", "{% set x %}", "{% set 5 = 1 %}", "{% set true = 1 %}", "{% for true in list %}{% endfor %}", "{% for x list %}{% endfor %}", "{% else %}",
    "{{ '\\x4' }}", "{{ '\\u12' }}", "{{ x.__class__.y }}", "{{ word.__class__.__mro__ }}", "{{ word['__class__'].x }}", "{{ 1 if }}", "{{ not }}", "{{ a[ }}", "{{ a[] }}", "{{ a. }}",
    "{{ f(a=1, 2) }}", "{{ f(,) }}", "{{ 'a' ~ }}", "{{ 12abc }}", "{{ 1 is defined is defined }}", "{% macro %}{% endmacro %}", "{% macro m(a, a) %}{% endmacro %}{{ m(1) }}",
    "{% endfor %}", "{% if yes %}{% endfor %}", "{% for x in list %}{% endif %}", "{{ {1 } }}", "{{ {'a' 1} }}", "{{ $ }}", "{{ a ? b }}", "{% for loop in list %}{% endfor %}",
]

# A backslash at the end of a line of PRINTS belongs to the template.
LINES = [line.replace("\0", "\\\n") for line in PRINTS.replace("\\\n", "\0").strip().split("\n")]
SNIPPETS = LINES + BLOCKS + FAILS
