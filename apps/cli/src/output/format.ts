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
