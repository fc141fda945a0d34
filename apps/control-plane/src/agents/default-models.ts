import type { Config } from '@svc/config';
import type { LlmVendor } from '@svc/contract';

/** The default model of each vendor. */
export type DefaultModels = Readonly<Record<LlmVendor, string>>;

/** The default models of the configuration. */
export function defaultModelsOf(
  config: Pick<Config, 'modelAnthropic' | 'modelOpenai' | 'modelGoogle' | 'modelDeepseek'>,
): DefaultModels {
  return {
    anthropic: config.modelAnthropic,
    openai: config.modelOpenai,
    google: config.modelGoogle,
    deepseek: config.modelDeepseek,
  };
}
