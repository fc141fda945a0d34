/**
 * What the adapters of the vendors' CLIs share: a process that is spoken to in lines of JSON, kept for many turns,
 * and what of it a session sees. A vendor's protocol is a {@link Dialogue}.
 */
export type { Dialogue, TurnEnd, VendorCli } from './dialogue.ts';
export { cliEnvironment } from './environment.ts';
export { AgentFailure, codeOfStatus } from './failure.ts';
export { JsonLinesProcess } from './json-lines-process.ts';
export { TurnFrames } from './turn-frames.ts';
export { DEADLINES, type Deadlines, VendorSession } from './vendor-session.ts';
