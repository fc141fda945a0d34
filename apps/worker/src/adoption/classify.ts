import type { EndReason, SandboxState } from '@svc/contract';
import type { Assignment } from '../sandbox/assignment.ts';
import { type Progress, readLabels } from '../sandbox/labels.ts';

/** What a restarted worker does with a VM that it finds alive. */
export type Verdict =
  | { readonly kind: 'pool' }
  /** A complete sandbox: it continues. */
  | { readonly kind: 'keep'; readonly assignment: Assignment; readonly progress: Progress }
  /** A sandbox that was half made or half ended: it is ended, and reported with this reason. */
  | {
      readonly kind: 'end';
      readonly assignment: Assignment;
      readonly progress: Progress;
      readonly reason: EndReason;
    }
  /** A VM without an owner: its labels are missing or unreadable. */
  | { readonly kind: 'discard' };

/** Decides by the labels and by whether the VM really is paused: a crash may have occurred between the two. */
export function classify(vm: { readonly labels: unknown; readonly paused: boolean }): Verdict {
  const owner = readLabels(vm.labels);
  if (owner === undefined) return { kind: 'discard' };
  if (owner.role === 'pool') return { kind: 'pool' };
  const { assignment, progress } = owner;
  const { state, end_reason: reason } = progress;
  const isComplete = state === 'running' || state === 'paused';
  const actual: SandboxState = isComplete ? (vm.paused ? 'paused' : 'running') : state;
  const found = { assignment, progress: { ...progress, state: actual } };
  if (reason !== undefined || !isComplete) {
    return { kind: 'end', ...found, reason: reason ?? 'boot_failed' };
  }
  return { kind: 'keep', ...found };
}
