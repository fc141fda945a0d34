import type { Config } from '@svc/config';
import type { LlmVendor } from '@svc/contract';

/** The model of each vendor for those who name none. */
export type DefaultModels = Readonly<Record<LlmVendor, string>>;

/** The defaults that the operator has set. */
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
