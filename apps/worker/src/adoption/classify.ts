import type { EndReason, SandboxState } from '@svc/contract';
import { readLabels, type SandboxLabels } from '../sandbox/labels.ts';

/** What a restarted worker does with a VM that lives. */
export type Verdict =
  | { readonly kind: 'pool' }
  /** A whole sandbox: it goes on. */
  | { readonly kind: 'keep'; readonly labels: SandboxLabels; readonly state: SandboxState }
  /** A sandbox that was half made or half ended: it is ended, and reported with this reason. */
  | {
      readonly kind: 'end';
      readonly labels: SandboxLabels;
      readonly state: SandboxState;
      readonly reason: EndReason;
    }
  /** Nobody's: its labels are missing or not to be understood. */
  | { readonly kind: 'discard' };

/** Decides by the labels and by whether the VM really is paused: a crash may have come between the two. */
export function classify(vm: { readonly labels: unknown; readonly paused: boolean }): Verdict {
  const labels = readLabels(vm.labels);
  if (labels === undefined) return { kind: 'discard' };
  if (labels.role === 'pool') return { kind: 'pool' };
  const whole = labels.state === 'running' || labels.state === 'paused';
  const state = whole ? (vm.paused ? 'paused' : 'running') : labels.state;
  if (labels.end_reason !== undefined || !whole) {
    return { kind: 'end', labels, state, reason: labels.end_reason ?? 'boot_failed' };
  }
  return { kind: 'keep', labels, state };
}
