/** Three reports of a component that reports every 5 seconds. */
const SILENT_SECONDS = 15;

/** The components that report, and those that do not any more although they have not said that they end. */
export function bySilence<T extends { readonly silent_seconds: number }>(listed: readonly T[]) {
  const { alive = [], silent = [] } = Object.groupBy(listed, ({ silent_seconds }) =>
    silent_seconds > SILENT_SECONDS ? 'silent' : 'alive',
  );
  return { alive, silent };
}

/** How a component ended, as far as one can know. */
export function endedSilently(
  name: string,
  { silent_seconds }: { silent_seconds: number },
): string {
  return `${name} ended without a shutdown ${Math.round(silent_seconds)} s ago`;
}
