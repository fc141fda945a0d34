/** What the tests of other packages use of this one. */
export { contentOf } from './tree-content.ts';
export { type SandboxWorkspace, WorkspaceClient, type WorkspaceStep } from './workspace-client.ts';
