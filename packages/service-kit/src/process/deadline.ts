/** A signal that aborts when `parent` does, or after `ms`, whichever comes first. */
export function withDeadline(parent: AbortSignal | undefined, ms: number): AbortSignal {
  const deadline = AbortSignal.timeout(ms);
  return parent === undefined ? deadline : AbortSignal.any([parent, deadline]);
}
