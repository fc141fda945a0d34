/** The link to the worker: TCP, one JSON object per line, as specified under `guest/` in `@svc/contract`. */
export { AgentLink, type AgentLinkOptions, type LinkHandler } from './agent-link.ts';
