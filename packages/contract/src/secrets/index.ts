export * from './bundles.ts';
export * from './rules.ts';
