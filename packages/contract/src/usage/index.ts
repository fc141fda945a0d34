export * from './dashboard.ts';
export * from './day.ts';
export * from './usage.ts';
