const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A bar of at most `width` characters for a value between 0 and `most`. Any value above 0 is visible. */
export function bar(value: number, most: number, width: number): string {
  if (value <= 0 || most <= 0) return '';
  const eighths = Math.max(1, Math.round((Math.min(value, most) / most) * width * 8));
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
}
