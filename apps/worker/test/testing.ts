/** What the tests of other packages use of this one. */
export { LIMITS, MemoryHost } from './memory-host.ts';
export { ScriptedGuest } from './scripted-guest.ts';
export { contentOf } from './tree-content.ts';
export { type SandboxWorkspace, WorkspaceClient, type WorkspaceStep } from './workspace-client.ts';
