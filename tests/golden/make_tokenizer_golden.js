// Writes data/bpe/{vocab.json,merges.txt,tokenizer.json} and data/bpe/ids.json: the first merges of
// GPT-2's vocabulary, and what the npm package gpt-tokenizer makes of texts with them. Also, for
// checks that are not committed, the whole vocabulary, its ids of a text, and the package's speed.
//   npm install gpt-tokenizer@4.0.0
//   node make_tokenizer_golden.js golden DATA-FOLDER
//   node make_tokenizer_golden.js full OUT-FOLDER TEXT
// (NODE_PATH names the folder node_modules where it is elsewhere.)
'use strict';
const fs = require('fs');
const path = require('path');
const { performance } = require('perf_hooks');

const main = require.resolve('gpt-tokenizer');
const cjs = path.join(main.slice(0, main.lastIndexOf('gpt-tokenizer')), 'gpt-tokenizer', 'cjs');
const ranks = require(path.join(cjs, 'bpeRanks', 'r50k_base.js'));
const { BytePairEncodingCore } = require(path.join(cjs, 'BytePairEncodingCore.js'));
const r50k = require(path.join(cjs, 'encoding', 'r50k_base.js'));
const raw = ranks.default ?? ranks;
const tokens = raw.map((t) => Buffer.from(typeof t === 'string' ? Buffer.from(t, 'utf8') : t));

// Bytes as GPT-2's files write them.
const alphabet = [];
{
  let next = 256;
  for (let b = 0; b < 256; ++b) {
    const prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    alphabet.push(String.fromCharCode(prints ? b : next++));
  }
}
const spell = (bytes) => Array.from(bytes, (b) => alphabet[b]).join('');

// The two tokens that a token was merged from: what is left of its bytes after earlier merges.
function mergesOf(list) {
  const rank = new Map(list.map((t, i) => [t.toString('latin1'), i]));
  return list.slice(256).map((token, i) => {
    let parts = Array.from(token, (b) => String.fromCharCode(b));
    while (parts.length > 2) {
      let best = -1, least = i + 256;
      for (let k = 0; k + 1 < parts.length; ++k) {
        const r = rank.get(parts[k] + parts[k + 1]);
        if (r !== undefined && r < least) { least = r; best = k; }
      }
      parts.splice(best, 2, parts[best] + parts[best + 1]);
    }
    return parts.map((p) => spell(Buffer.from(p, 'latin1')));
  });
}

function writeFiles(folder, list) {
  fs.mkdirSync(folder, { recursive: true });
  const vocab = Object.fromEntries(list.map((t, i) => [spell(t), i]));
  const merges = mergesOf(list).map((m) => m.join(' '));
  const end = '<|endoftext|>';
  fs.writeFileSync(path.join(folder, 'vocab.json'), JSON.stringify({ ...vocab, [end]: list.length }));
  fs.writeFileSync(path.join(folder, 'merges.txt'), '#version: 0.2\n' + merges.join('\n') + '\n');
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true };
  fs.writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify({
    version: '1.0',
    added_tokens: [{ id: list.length, content: end, single_word: false, lstrip: false,
                     rstrip: false, normalized: true, special: true }],
    normalizer: null, pre_tokenizer: byteLevel, post_processor: byteLevel, decoder: byteLevel,
    model: { dropout: null, unk_token: null, continuing_subword_prefix: '',
             end_of_word_suffix: '', fuse_unk: false, vocab, merges },
  }));
}

const scripts = [
  'Hello world! It\'s a test, isn\'t it? We\'ll see what they\'ve done; I\'m sure you\'d know.',
  'HELLO WORLD It\'S CAPITALS \'s \'t \'re\'ve', 'don’t use ‘curly’ quotes — or dashes…',
  '  leading,   inner    and trailing   ', '\n\n\t tabs\tand\r\nlines \n \n x', ' ', '   ', '',
  'a', '\0\x01\x02\x1b[31mred\x7f', 'x\u0085y\u00a0z\u2003w\u3000v\u2028u\u1680t\u180es\u200br',
  '1234567890 3.14159 ½ ² Ⅷ ٣٤٥ १२३ 𝟙𝟚', 'naïve café Ångström Straße İstanbul ſ',
  'Привет, мир! Как дела? Ёлка и щётка.', 'Γειά σου Κόσμε, τι κάνεις;', 'שלום עולם, מה שלומך?',
  'مرحبا بالعالم، كيف حالك؟', 'नमस्ते दुनिया, आप कैसे हैं?', 'হ্যালো বিশ্ব', 'வணக்கம் உலகம்', 'สวัสดีชาวโลก',
  '你好，世界！今天天气怎么样？', 'こんにちは、世界。カタカナ', '안녕하세요 세계', 'გამარჯობა მსოფლიო', 'Բարեւ աշխարհ',
  'ሰላም ልዑል', 'ᠮᠣᠩᠭᠣᠯ', 'Xin chào thế giới', 'e\u0301 a\u0308 combining', '𐍈 𝒳 𠜎 rare planes',
  '😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ❤️ 👍🏽', '\ufeffbom and \ufffd replacement \uffff',
  'int main() {\n\tfor (int i = 0; i < 10; ++i) {\n        printf("%d\\n", i);\n    }\n}',
  'https://example.com/a?b=c&d=%20#frag user@example.org', '<|endoftext|> as text', 'don\'tdon\'t',
  'a'.repeat(300), ' '.repeat(200) + 'x', '-'.repeat(500), '\n'.repeat(100), 'ab'.repeat(200),
  '中'.repeat(150), '😀'.repeat(70), '1'.repeat(200), ' a'.repeat(100), '\t '.repeat(50),
];

// Characters of all kinds in any order, always the same ones.
function randomTexts(count) {
  let state = 12345;
  const next = (n) => { state = (Math.imul(state, 1103515245) + 12345) >>> 0; return (state >>> 8) % n; };
  const from = [' ', ' ', '\n', '\t', '\'', 's', 'the', 'a', 'E', '0', '9', '.', '!!', '\u00a0',
                '\u2009', 'é', 'ß', 'ж', 'א', 'ع', 'ह', '\u094d', '漢', 'か', '한', '😀', '\u200d', '²', '\0'];
  return Array.from({ length: count }, () =>
    Array.from({ length: 1 + next(40) }, () => from[next(from.length)]).join(''));
}

function core(list) {
  const params = require(path.join(cjs, 'encodingParams', 'r50k_base.js')).R50KBase(list.map(
    (t) => { const s = t.toString('utf8'); return Buffer.from(s, 'utf8').equals(t) ? s : Array.from(t); }));
  return new BytePairEncodingCore({ ...params, specialTokensEncoder: undefined });
}

const [mode, folder, textFile] = process.argv.slice(2);
if (mode === 'golden') {
  const list = tokens.slice(0, 256 + 1500);
  writeFiles(folder, list);
  const reference = core(list);
  // What JavaScript takes for white space differs from Unicode's in these two characters.
  const same = (text) => !/[\u0085\ufeff]/.test(text);
  const cases = [...scripts, ...randomTexts(150)].filter(same).map((text) =>
    ({ text, ids: [...reference.encodeNative(text)].flat() }));
  fs.writeFileSync(path.join(folder, 'ids.json'), JSON.stringify(cases).replaceAll('},{', '},\n{') + '\n');
  console.log(`${cases.length} texts, ${list.length} tokens`);
} else {
  writeFiles(folder, tokens);
  const text = fs.readFileSync(textFile, 'utf8');
  const plain = { disallowedSpecial: new Set() };
  let ids = r50k.encode(text, plain);  // once to warm up
  const start = performance.now();
  ids = r50k.encode(text, plain);
  const seconds = (performance.now() - start) / 1000;
  const megabytes = Buffer.byteLength(text) / 1e6;
  fs.writeFileSync(path.join(folder, 'ids.i32'), Buffer.from(Int32Array.from(ids).buffer));
  console.log(`gpt-tokenizer: ${ids.length} tokens, ${(megabytes / seconds).toFixed(2)} MB/s`);
}
