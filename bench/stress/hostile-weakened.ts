/** `node --import` this to run the library with one protection taken out of its source, named by HOSTILE_WITHOUT. */
import { cutSources } from '../harness/cut-sources.ts'
import { hostileCuts, isHostileControl } from './hostile-cuts.ts'

const without = process.env['HOSTILE_WITHOUT'] ?? ''
if (!isHostileControl(without)) throw new Error(`there is no control "${without}"`)
cutSources(hostileCuts[without])
