import { ERRORS } from '@svc/contract';
import { expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { shared } from '../../test/shared-service.ts';

interface Operation {
  readonly operationId?: string;
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, unknown>>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const answer = await shared.raw({ target: '/openapi.json' });
const document = answer.json<Document>();
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const account = await shared.signUp();

test('is an OpenAPI 3.1 document with every route of sandboxes and accounts', () => {
  expect(answer.status).toBe(200);
  expect(document.openapi).toMatch(/^3\.1\./);
  const routes = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`);
  expect(routes).toEqual(
    expect.arrayContaining([
      'POST /v1/tenants',
      'POST /v1/tenants/verify',
      'GET /v1/tenants/me',
      'POST /v1/sandboxes',
      'GET /v1/sandboxes',
      'GET /v1/sandboxes/{id}',
      'DELETE /v1/sandboxes/{id}',
      'POST /v1/sandboxes/{id}/exec',
      'GET /v1/sandboxes/{id}/logs',
      'GET /v1/sandboxes/{id}/files',
      'POST /v1/sandboxes/{id}/files',
      'POST /v1/sandboxes/{id}/cancel',
      'POST /v1/sandboxes/{id}/connect',
      'POST /v1/sandboxes/{id}/pause',
      'POST /v1/sandboxes/{id}/resume',
    ]),
  );
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

const secured = operations.filter(({ operation }) => (operation.security ?? []).length > 0);

test.each(secured)(
  '$method $path requires the credential that it documents',
  async ({ path, method, operation }) => {
    const target = path.replaceAll(/\{[^}]+\}/g, 'x');
    expectProblem(await shared.raw({ method: method.toUpperCase(), target }), 'unauthorized');
    expect(Object.keys(operation.responses)).toContain('401');
  },
);

test.each(operations)(
  '$method $path answers with a status that it documents',
  async ({ path, method, operation }) => {
    const target = path.replaceAll(/\{[^}]+\}/g, 'x');
    const { status } = await shared.raw({
      method: method.toUpperCase(),
      target,
      apiKey: account.apiKey,
      ...(method === 'post' ? { body: {} } : {}),
    });
    expect(Object.keys(operation.responses)).toContain(String(status));
  },
);

test('operations document only statuses of the error catalogue', () => {
  const known = new Set([
    '200',
    '201',
    '204',
    '206',
    '303',
    // The answer of a server in a sandbox.
    'default',
    ...Object.values(ERRORS).map((error) => String(error.status)),
  ]);
  for (const { operation } of operations) {
    for (const status of Object.keys(operation.responses)) expect(known).toContain(status);
  }
});

test.each(['/healthz', '/readyz', '/metrics'])(
  '%s answers without a credential',
  async (target) => {
    expect((await shared.raw({ target })).status).toBe(200);
  },
);
