export * from './facade.ts';
