export * from './api-keys.ts';
export * from './audit.ts';
export * from './email.ts';
export * from './sign-in.ts';
export * from './tenants.ts';
