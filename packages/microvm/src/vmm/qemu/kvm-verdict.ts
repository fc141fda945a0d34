import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit/process';

/** How the guest of a probe fared: it booted, its QEMU ended before, or it took too long. */
export type ProbeOutcome = 'booted' | 'ended' | 'timed_out';

/** A probe that took too long may have met a busy machine: another start tries again after this time. */
const TIMEOUT_VALID_MS = 60 * 60_000;

/** The contents of the file. */
interface Verdict {
  /** Kernel, processor and QEMU. */
  readonly machine: string;
  readonly kvm: boolean;
  /** Unix milliseconds of a probe that took too long. */
  readonly timedOutAt?: number;
}

/** Whether KVM works, as an earlier probe of the same machine found. Undefined if it is to be probed. */
export async function readVerdict(path: string, machine: string): Promise<boolean | undefined> {
  const verdict = await readFileVerdict(path);
  if (verdict?.machine !== machine) return undefined;
  const { kvm, timedOutAt } = verdict;
  if (timedOutAt !== undefined && Date.now() - timedOutAt > TIMEOUT_VALID_MS) return undefined;
  return kvm;
}

/** Stores the outcome of a probe for {@link readVerdict}. */
export async function writeVerdict(
  path: string,
  machine: string,
  outcome: ProbeOutcome,
): Promise<void> {
  const timedOut = outcome === 'timed_out' ? { timedOutAt: Date.now() } : {};
  const verdict: Verdict = { machine, kvm: outcome === 'booted', ...timedOut };
  await mkdir(dirname(path), { recursive: true });
  await writeFileAtomic(path, `${JSON.stringify(verdict)}\n`, { mode: 0o644 });
}

async function readFileVerdict(path: string): Promise<Verdict | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (absent || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
