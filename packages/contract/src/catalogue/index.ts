/** `/v1/templates`: the apps for sessions. */

import { type Static, Type } from 'typebox';
import { AGENTS, type Agent } from '../agents.ts';

export const CapabilitySet = Type.Object(
  {
    set_id: Type.String({ minLength: 1, maxLength: 128, examples: ['default'] }),
    name: Type.String({ minLength: 1 }),
    tools: Type.Array(Type.String({ minLength: 1 })),
  },
  { title: 'CapabilitySet' },
);

/** An app as the catalogue file describes it. */
export const CatalogueApp = Type.Object(
  {
    app_id: Type.String({ minLength: 1, maxLength: 128, examples: ['deictic'] }),
    name: Type.String({ minLength: 1 }),
    description: Type.String(),
    capability_sets: Type.Array(CapabilitySet, { minItems: 1 }),
  },
  { title: 'CatalogueApp' },
);
export type CatalogueApp = Static<typeof CatalogueApp>;

/** The builds of each agent, oldest first. */
export type AgentVersions = Readonly<Record<Agent, readonly string[]>>;

export const CatalogueEntry = Type.Object(
  {
    ...CatalogueApp.properties,
    versions: Type.Unsafe<AgentVersions>({
      ...Type.Object(Object.fromEntries(AGENTS.map((agent) => [agent, Type.Array(Type.String())]))),
      description:
        'The builds of each agent that `agent.version` of a session can name: those that the images of live workers carry.',
      examples: [{ deictic: ['0.1.0'], 'claude-code': ['2.1.330'], codex: ['0.169.0'] }],
    }),
  },
  { title: 'CatalogueEntry' },
);
export type CatalogueEntry = Static<typeof CatalogueEntry>;

export const CatalogueParams = Type.Object({
  app_id: Type.String({ description: 'App of the catalogue.', examples: ['deictic'] }),
});

export const ListTemplatesResponse = Type.Object({ templates: Type.Array(CatalogueEntry) });
export type ListTemplatesResponse = Static<typeof ListTemplatesResponse>;
