/** `node --import` this to run a guardian that does not end a command whose holder died or stands still. */
import { cutSources } from '../harness/cut-sources.ts'

cutSources(
  {
    'exec/guardian.ts': [
      [/\n {2}void end\(child\.pid\)\n\}\)/, '\n})'],
      [/\n {2}void end\(child\.pid\)\n\}, lookEveryMs\)/, '\n}, lookEveryMs)'],
    ],
  },
  'packages/cli/src',
)
