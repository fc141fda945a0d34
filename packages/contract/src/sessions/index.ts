export * from './after-seq.ts';
export * from './app.ts';
export * from './create.ts';
export * from './desktop-calls.ts';
export * from './frames.ts';
export * from './record.ts';
export * from './token.ts';
export * from './view-update.ts';
