export * from './auto-topup.ts';
export * from './balance.ts';
export * from './checkout.ts';
export * from './transactions.ts';
