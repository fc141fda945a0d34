/** What was read, or `fallback` where it does not exist, or does not exist any more. */
export async function orIfAbsent<T, F>(reading: Promise<T>, fallback: F): Promise<T | F> {
  try {
    return await reading;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'ENOTDIR') return fallback;
    throw error;
  }
}
