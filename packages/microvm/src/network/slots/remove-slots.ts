import { runProgram } from '@svc/service-kit/process';
import { NetworkError } from '../network-error.ts';
import { networkNames } from './existing-slots.ts';

/**
 * Removes slots by name. Missing parts, for example after a crash, are not an error.
 *
 * @throws NetworkError `network_setup_failed` when a namespace or interface remains
 */
export async function removeSlots(names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const batch = names.map((name) => `link del ${name}\nnetns del ${name}\n`).join('');
  // `ip` fails both for a missing part and for one that it cannot remove, so the result has to be checked.
  const failure = await runProgram('ip', ['-force', '-batch', '-'], batch).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure === undefined) return;
  const existing = await networkNames();
  const left = names.filter((name) => existing.has(name));
  if (left.length > 0) {
    throw new NetworkError('network_setup_failed', `cannot remove ${left.join(', ')}`, {
      cause: failure,
    });
  }
}
