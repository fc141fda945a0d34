/** `/v1/templates`: the apps for sessions. */

import { type Static, Type } from 'typebox';

export const CapabilitySet = Type.Object(
  {
    set_id: Type.String({ minLength: 1, maxLength: 128, examples: ['default'] }),
    name: Type.String({ minLength: 1 }),
    tools: Type.Array(Type.String({ minLength: 1 })),
  },
  { title: 'CapabilitySet' },
);

export const CatalogueEntry = Type.Object(
  {
    app_id: Type.String({ minLength: 1, maxLength: 128, examples: ['deictic'] }),
    name: Type.String({ minLength: 1 }),
    description: Type.String(),
    capability_sets: Type.Array(CapabilitySet, { minItems: 1 }),
  },
  { title: 'CatalogueEntry' },
);
export type CatalogueEntry = Static<typeof CatalogueEntry>;

export const CatalogueParams = Type.Object({
  app_id: Type.String({ description: 'App of the catalogue.', examples: ['deictic'] }),
});

export const ListTemplatesResponse = Type.Object({ templates: Type.Array(CatalogueEntry) });
export type ListTemplatesResponse = Static<typeof ListTemplatesResponse>;
