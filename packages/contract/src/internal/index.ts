export * from './agent.ts';
export * from './control-plane-api.ts';
export * from './placement.ts';
export * from './sandbox.ts';
export * from './session.ts';
export * from './worker-api.ts';
