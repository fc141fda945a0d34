// The LLM gateway alone, with one account for all requests from this machine.
import { createEgress } from '@svc/egress';
import { createLogger, createMetrics, Secret } from '@svc/service-kit';
import { LlmGateway } from '@svc/worker';

/** The program's only argument, as JSON. */
export interface GatewayOptions {
  readonly upstream: string;
  readonly upstreamHost: string;
  readonly caFile: string;
}

const { upstream, upstreamHost, caFile } = JSON.parse(process.argv[2] ?? '') as GatewayOptions;
const HOST = '127.0.0.1';
const egress = createEgress({ allowHosts: [{ host: upstreamHost, port: undefined }], caFile });
const gateway = new LlmGateway({
  egress,
  metrics: createMetrics(),
  logger: createLogger({ level: 'warn' }),
});
gateway.register(HOST, {
  tenantId: 'bare',
  vmId: 'vm_bench',
  vendor: 'anthropic',
  dialect: 'anthropic',
  apiKey: new Secret('sk-bench'),
  baseUrl: upstream,
  onUsage: () => undefined,
});
process.send?.((await gateway.listen({ host: HOST, port: 0 })).port);
process.once('disconnect', () => process.exit());
