/** Elements without readable content. */
const SKIPPED = ['script', 'style', 'noscript', 'svg', 'template'];

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&nbsp;': ' ',
};

/** The approximate readable text of a page, for a model. Runs in linear time. */
export function htmlText(html: string): string {
  // ASCII letters only, since lowercasing others may change the length.
  const lower = html.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  let text = '';
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf('<', at);
    if (open === -1) break;
    text += html.slice(at, open);
    at = afterTag(html, lower, open);
    text += /^<\/?(p|div|li|h\d|tr|br|ul|ol|table|section|article)\b/.test(
      lower.slice(open, open + 12),
    )
      ? '\n'
      : ' ';
  }
  text += html.slice(at);
  return text
    .replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? entity)
    .split('\n')
    .map((line) => line.split(/\s+/).join(' ').trim())
    .filter((line) => line !== '')
    .join('\n');
}

/** The offset after the tag, comment or skipped element that begins at `open`. */
function afterTag(html: string, lower: string, open: number): number {
  if (lower.startsWith('<!--', open)) return after(html, '-->', open);
  const skipped = SKIPPED.find((name) => lower.startsWith(`<${name}`, open));
  return after(lower, skipped === undefined ? '>' : `</${skipped}>`, open);
}

function after(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  return found === -1 ? text.length : found + mark.length;
}
