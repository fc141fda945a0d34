export * from './agent-link.ts';
