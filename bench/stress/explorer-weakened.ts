/** `node --import` this to run the explorer with one protection taken out of its source, named by EXPLORER_WITHOUT. */
import { cutSources } from '../harness/cut-sources.ts'
import { explorerCuts, isExplorerControl } from './explorer-cuts.ts'

const without = process.env['EXPLORER_WITHOUT'] ?? ''
if (!isExplorerControl(without)) throw new Error(`there is no control "${without}"`)
cutSources(explorerCuts[without], 'packages/race/src')
