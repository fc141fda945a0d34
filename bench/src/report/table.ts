import type { RowResult } from '../measure/row.ts';

const HEADER = ['what', 'against', 'unit', 'ours', 'p99', 'other', 'p99', 'figure', 'bound', ''];

/** Formats the results as a text table. */
export function resultTable(results: readonly RowResult[]): string {
  const lines = [HEADER, ...results.map(cells)];
  const widths = HEADER.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const text = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const notes = results.flatMap(({ name, notes }) => notes.map((note) => `${name}: ${note}`));
  return [...text, '', ...new Set(notes), ''].join('\n');
}

function cells(result: RowResult): string[] {
  const { what, against, unit, ours, comparison, figure, bound, ok } = result;
  return [
    what,
    against,
    unit,
    number(ours.median),
    number(ours.p99),
    comparison === undefined ? '' : number(comparison.median),
    comparison === undefined ? '' : number(comparison.p99),
    figure.text,
    bound,
    ok ? 'ok' : 'MISS',
  ];
}

function number(value: number): string {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}
