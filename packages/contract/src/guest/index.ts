export * from './agent-link.ts';
export * from './guest-link.ts';
