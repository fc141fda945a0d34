/** The line to the worker: TCP, one JSON object a line, as `@svc/contract` describes it under `guest/`. */
export { AgentLink, type AgentLinkOptions, type LinkHandler } from './agent-link.ts';
