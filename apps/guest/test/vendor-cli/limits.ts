import type { AppJson } from '@svc/contract';
import type { RecordedRequest } from '@svc/model-server';

/** An app that limits its one agent to these tools. */
export function appWith(...tools: string[]): AppJson {
  return { name: 'limited', capability_sets: [{ name: 'only', agents: [{ name: 'one', tools }] }] };
}

/**
 * The names of the tools in requests to the model, those of namespaces too, each once, in order; of tools without a name,
 * their types.
 */
export function toolsIn(requests: readonly RecordedRequest[]): string[] {
  const tools = requests
    .flatMap(({ body }) => (body as Body | undefined)?.tools ?? [])
    .flatMap((tool) => tool.tools ?? [tool]);
  return [...new Set(tools.map(({ name, type }) => name ?? type ?? ''))].sort();
}

interface Tool {
  readonly name?: string;
  readonly type?: string;
  readonly tools?: readonly Tool[];
}

interface Body {
  readonly tools?: readonly Tool[];
}
