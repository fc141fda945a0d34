const ABSENT = ['ENOENT', 'ESRCH', 'ENOTDIR'];

/** The result of reading a file or an entry of /proc, or `fallback` if it does not exist or has just vanished. */
export async function orIfAbsent<T, F>(reading: Promise<T>, fallback: F): Promise<T | F> {
  try {
    return await reading;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (ABSENT.includes(code)) return fallback;
    throw error;
  }
}
