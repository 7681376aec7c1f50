import type { Rule } from 'eslint'

/** What every rule of ours says about itself. */
export function describeRule(
  name: string,
  description: string,
  messages: Readonly<Record<string, string>>,
): Rule.RuleMetaData {
  return {
    type: 'problem',
    docs: {
      description,
      recommended: true,
      url: `https://github.com/OWNER/REPOSITORY/blob/main/docs/lint/${name}.md`,
    },
    schema: [],
    messages: { ...messages },
  }
}
