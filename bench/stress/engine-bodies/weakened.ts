/** `node --import` this to run the library with one protection taken out of its source, named by BODIES_WITHOUT. */
import { cutSources } from '../../harness/cut-sources.ts'
import { controls } from './cuts.ts'

const [family = '', name = ''] = (process.env['BODIES_WITHOUT'] ?? '').split(' ')
const control = controls[family as keyof typeof controls]?.[name]
if (control === undefined) throw new Error(`there is no control "${family} ${name}"`)
cutSources(control.cuts)
