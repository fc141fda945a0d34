/** Formats a duration: `850 ms`, `3.2 s`, `4m 10s`, `2h 5m`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${Math.floor(seconds % 60)}s`;
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}

/** Formats the time from `start` to `end`, RFC 3339, by default until now. */
export function formatAge(start: string, end?: string): string {
  const until = end === undefined ? Date.now() : Date.parse(end);
  return formatDuration(Math.max(0, until - Date.parse(start)));
}

/** Formats a size in MiB: `512 MiB`, `1.5 GiB`. */
export function formatMib(mib: number): string {
  return mib < 1024 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

/** Formats US dollars with cents, and small amounts with as many digits as they need: `$4.88`, `$0.000123`, `-$0.50`. */
export function formatUsd(dollars: number): string {
  const amount = Math.abs(dollars);
  const digits = amount > 0 && amount < 0.1 ? 6 : 2;
  return `${dollars < 0 ? '-' : ''}$${amount.toFixed(digits)}`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Formats a size in bytes: `512 B`, `1.5 KiB`, `20.0 MiB`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}

/** Formats rows as columns, each as wide as its widest cell. The first row is the heading. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
