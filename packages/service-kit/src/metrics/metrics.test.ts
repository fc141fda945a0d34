import { ServiceError } from '@svc/contract';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createHttpServer } from '../http/server.ts';
import { createSelfSigned } from '../tls/index.ts';
import { registerCertificateMetrics } from './certificate-metrics.ts';
import { registerHttpMetrics } from './http-metrics.ts';
import { createMetrics } from './metrics.ts';

it('counts requests by route pattern, never by URL', async () => {
  const registry = createMetrics();
  const app = createHttpServer({ logger: pino({ level: 'silent' }) });
  registerHttpMetrics(app, registry, 'control_plane');
  app.get('/things/:id', () => ({ ok: true }));
  await app.inject('/things/1');
  await app.inject('/things/2');
  await app.inject('/nowhere');
  const text = await registry.metrics();
  expect(text).toContain(
    'svc_control_plane_http_request_duration_seconds_count{method="GET",route="/things/:id",status="200"} 2',
  );
  expect(text).toContain('route="none",status="404"} 1');
  expect(text).toContain('process_cpu_seconds_total');
  await app.close();
});

it('counts problems by code', async () => {
  const registry = createMetrics();
  const app = createHttpServer({ logger: pino({ level: 'silent' }) });
  registerHttpMetrics(app, registry, 'worker');
  app.get('/full', () => {
    throw new ServiceError('no_capacity');
  });
  app.get('/broken', () => {
    throw new Error('a bug');
  });
  for (const url of ['/full', '/full', '/broken', '/nowhere']) await app.inject(url);
  const text = await registry.metrics();
  expect(text).toContain('svc_worker_problems_total{code="no_capacity"} 2');
  expect(text).toContain('svc_worker_problems_total{code="internal_error"} 1');
  expect(text).toContain('svc_worker_problems_total{code="route_not_found"} 1');
  await app.close();
});

it('reports when the first certificate of a chain expires', async () => {
  const registry = createMetrics();
  const certificates = await Promise.all(
    [30, 10].map((days) => createSelfSigned({ commonName: 'a', names: ['localhost'], days })),
  );
  registerCertificateMetrics(registry, 'worker', {
    cert: certificates.map(({ cert }) => cert).join('\n'),
  });
  const [, seconds] =
    /^svc_worker_certificate_expiry_timestamp_seconds (\S+)$/m.exec(await registry.metrics()) ?? [];
  const inTenDays = Date.now() / 1000 + 10 * 86_400;
  expect(Math.abs(Number(seconds) - inTenDays)).toBeLessThan(3600);
});
