/** Elements whose content nobody reads. */
const UNREAD = ['script', 'style', 'noscript', 'svg', 'template'];

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&nbsp;': ' ',
};

/** The readable text of a page, about: what a model needs of it. Takes time in proportion to its length. */
export function htmlText(html: string): string {
  // Letters of ASCII only: others may change the length.
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

/** Where the text goes on behind the tag, the comment or the unread element that begins here. */
function afterTag(html: string, lower: string, open: number): number {
  if (lower.startsWith('<!--', open)) return behind(html, '-->', open);
  const unread = UNREAD.find((name) => lower.startsWith(`<${name}`, open));
  return behind(lower, unread === undefined ? '>' : `</${unread}>`, open);
}

function behind(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  return found === -1 ? text.length : found + mark.length;
}
