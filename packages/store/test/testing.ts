/** Real databases for tests, also of other packages. */
export { statementOwner } from '../src/statement-owner.ts';
export { type PgBouncer, startPgBouncer } from './pgbouncer.ts';
export { type PostgresPair, startPostgresOn, startPostgresPair } from './postgres-servers.ts';
export { startSharedServer } from './shared-server.ts';
export { startTestPostgres, type TestPostgres } from './test-postgres.ts';
export { startTestServer } from './test-server.ts';
