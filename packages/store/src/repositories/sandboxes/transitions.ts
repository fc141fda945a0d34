import { predecessors, SANDBOX_STATES, type SandboxState } from '@svc/contract';

/**
 * States from which `to` can be reached by one legal move or several. A worker's report may sum up
 * several moves, for the ledger hears of most states only after the fact.
 */
export function sourcesOf(to: SandboxState): SandboxState[] {
  const sources = new Set<SandboxState>(predecessors(to));
  for (const source of sources) {
    for (const earlier of predecessors(source)) sources.add(earlier);
  }
  sources.delete(to);
  return [...sources];
}

/** Every such pair, as two parallel lists for a statement to join with. */
export const MOVES: { readonly from: SandboxState[]; readonly to: SandboxState[] } = (() => {
  const pairs = SANDBOX_STATES.flatMap((to) => sourcesOf(to).map((from) => ({ from, to })));
  return { from: pairs.map((pair) => pair.from), to: pairs.map((pair) => pair.to) };
})();
