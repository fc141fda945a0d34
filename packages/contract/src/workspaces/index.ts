export * from './path.ts';
export * from './workspaces.ts';
