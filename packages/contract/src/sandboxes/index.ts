export * from './app-json.ts';
export * from './cancel.ts';
export * from './create.ts';
export * from './env.ts';
export * from './exec.ts';
export * from './files.ts';
export * from './logs.ts';
export * from './record.ts';
