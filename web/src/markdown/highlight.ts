// Colours for code, by what most languages share: comments, strings, numbers and common words.

export interface Piece {
  kind: 'text' | 'comment' | 'string' | 'number' | 'word';
  text: string;
}

const longest = 60_000; // characters; longer code stays plain

const words = new Set(
  ('abstract and any as assert async await auto begin bool boolean break byte case catch char class const constexpr ' +
    'continue crate def default defer del delete do done double elif else end enum esac except export extends extern ' +
    'false final finally float fi fn for foreach from func function global go if impl implements import in include ' +
    'inline instanceof int interface internal is lambda let long loop match mod module mut namespace new nil none not ' +
    'null nullptr number of operator or override package pass private protected pub public raise readonly record ' +
    'ref requires return self short signed sizeof static string struct super switch template then this throw throws ' +
    'trait true try type typedef typename typeof undefined union unsafe unsigned use using var virtual void volatile ' +
    'where while with yield True False None select insert update delete create table join group order by having limit ' +
    'values into set distinct').split(' '),
);

const hashComments = new Set(
  'bash sh shell zsh console fish python py ruby rb perl r yaml yml toml ini conf make makefile cmake dockerfile nim elixir julia'.split(' '),
);
const dashComments = new Set('sql lua haskell hs ada vhdl elm'.split(' '));
const plain = new Set('text txt plain plaintext output log markdown md csv'.split(' '));

export function highlight(code: string, language: string): Piece[] {
  const name = language.toLowerCase();
  if (code.length > longest || name === '' || plain.has(name)) return [{ kind: 'text', text: code }];
  const sql = name === 'sql';
  const pieces: Piece[] = [];
  const push = (kind: Piece['kind'], text: string) => {
    const last = pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  for (const match of code.matchAll(pattern(name))) {
    const [text, comment, quoted, number, word] = match;
    if (comment !== undefined) push('comment', text);
    else if (quoted !== undefined) push('string', text);
    else if (number !== undefined) push('number', text);
    else push(word !== undefined && words.has(sql ? word.toLowerCase() : word) ? 'word' : 'text', text);
  }
  return pieces;
}

function pattern(language: string): RegExp {
  let comment = '\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)';
  if (hashComments.has(language)) comment = '(?<![^\\s;])#[^\\n]*';
  else if (dashComments.has(language)) comment = '--[^\\n]*';
  else if (/^(html|xml|svg|vue)$/.test(language)) comment = '<!--[^]*?(?:-->|$)';
  const quoted = '"""[^]*?(?:"""|$)|"(?:[^"\\\\\\n]|\\\\.){0,1000}"?|\'(?:[^\'\\\\\\n]|\\\\.){0,1000}\'|`(?:[^`\\\\]|\\\\.){0,1000}`';
  return new RegExp(`(${comment})|(${quoted})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)|\\s+|[^]`, 'g');
}
