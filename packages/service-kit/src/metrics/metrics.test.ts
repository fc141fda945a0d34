import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createHttpServer } from '../http/server.ts';
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
