export * from './api-keys.ts';
export * from './email.ts';
export * from './tenants.ts';
