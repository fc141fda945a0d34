export * from './control-plane-api.ts';
export * from './sandbox.ts';
export * from './worker-api.ts';
