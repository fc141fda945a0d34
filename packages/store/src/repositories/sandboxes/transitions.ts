import { predecessors, SANDBOX_STATES, type SandboxState } from '@svc/contract';

/**
 * States from which `to` can be reached by one or more legal transitions. A worker's report can cover several
 * transitions, because the ledger learns of most states only afterwards.
 */
export function sourcesOf(to: SandboxState): SandboxState[] {
  const sources = new Set<SandboxState>(predecessors(to));
  for (const source of sources) {
    for (const earlier of predecessors(source)) sources.add(earlier);
  }
  sources.delete(to);
  return [...sources];
}

/** All pairs of such states, as two parallel lists for a statement to join with. */
export const TRANSITIONS: { readonly from: SandboxState[]; readonly to: SandboxState[] } = (() => {
  const pairs = SANDBOX_STATES.flatMap((to) => sourcesOf(to).map((from) => ({ from, to })));
  return { from: pairs.map((pair) => pair.from), to: pairs.map((pair) => pair.to) };
})();
