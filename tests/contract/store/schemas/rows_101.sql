-- The rows of a database of schema 101: two jobs that succeeded, one that runs, and one that waits, in
-- an active sweep. The last stored epoch is not in its curve yet.
BEGIN;
INSERT INTO configurations VALUES (1,'{"format":1,"model":{"activation":"relu","attention_bias":true,"d_ff":16,"d_model":8,"dropout":0.1,"dropout_sites":["attention","output","ffn"],"final_norm":true,"heads":2,"key_padding":"masked","kv_source":"self","layer_norm_eps":0.00001,"layers":2,"mask":"causal","max_len":16,"readout":"masked_mean"},"pe":{"name":"nope","version":1},"seed":,"task":{"data_seed":,"definition":"clean","label_space":"exact","length":16,"max_distance":8,"name":"distance","scored_classes":"all","split":"disjoint","test_examples":32,"train_examples":64,"version":1,"vocabulary":40},"train":{"batch_size":64,"beta1":0.98,"beta2":0.9,"epochs":2,"epsilon":1e-8,"lr":0.001,"schedule":"cosine","warmup_fraction":0.06,"weight_decay":0.00001}}',2.2873856958478193668);
INSERT INTO jobs VALUES (1,'4f345309f3e3b3d5cfde9a951f693ffa703dc86058267f2212074a104bf05632',1,'nope','nope','distance','clean',0,'any',0,'succeeded',0,2,1,0,0,2,11,64,5,32,5,32,0.02099969000000000141,'cpu',NULL,1795270470959,1795270472530,1,'{"threads":1,"micro_batch":0,"packing":1}',1,1,1,2.1179921627044677734,2.1352174282073974609,0,NULL);
INSERT INTO jobs VALUES (2,'fe374146b0f4123ad031b43bcac63f09cac15766413292725c7df08699ebf651',1,'nope','nope','distance','clean',1,'any',0,'succeeded',0,2,1,0,0,2,9,64,2,32,3,32,0.013162171000000000287,'cpu',NULL,1795270470959,1795270472488,1,'{"threads":1,"micro_batch":0,"packing":1}',1,1,1,2.078268289566040039,2.1426436901092529296,0,NULL);
INSERT INTO jobs VALUES (3,'e740ec3d1e42110c9829dc5080b602a9d06f81f7dc33a1b119f588c6700024cc',1,'nope','nope','distance','clean',2,'any',0,'running',0,2,1,0,0,1,11,64,5,32,5,32,0.012879803000000000431,'cpu',NULL,1795270470959,NULL,0,'{"threads":1,"micro_batch":0,"packing":1}',1,1,1,2.0903367996215820312,2.1006908416748046875,0,NULL);
INSERT INTO jobs VALUES (4,'8fb2c8aa0f02aa1770b570a23edb0c033e473b96dffe3ad28b8f8fc3a3e9bb2e',1,'nope','nope','distance','clean',3,'any',0,'queued',0,2,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795270470959,NULL,0,NULL,1,1,1,NULL,NULL,0,NULL);
INSERT INTO sweeps VALUES (1,'kept','clean','name: kept
protocol: clean
pe: [nope]
task: {name: distance, length: 16, vocabulary: 40, train_examples: 64, test_examples: 32}
seed: [0, 1, 2, 3]
model: {d_model: 8, d_ff: 16, heads: 2, layers: 2, max_len: 16, dropout: 0.1}
train: {epochs: 2, batch_size: 64, lr: 1e-3}
analyses: [head_ablation, layer_ablation]
','kept.yaml','[]','1e82b331-b776-4774-8aee-8c7a0e0f44a2','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]','{"device":"any","memory_bytes":0}',0,0,'active',4,4,4,0,0,0,1795270470959,0,0,0,0,NULL,'[]','',0,0);
INSERT INTO sweep_jobs VALUES (1,0,1,1,NULL);
INSERT INTO sweep_jobs VALUES (1,1,2,1,NULL);
INSERT INTO sweep_jobs VALUES (1,2,3,1,NULL);
INSERT INTO sweep_jobs VALUES (1,3,4,1,NULL);
INSERT INTO sweep_counts VALUES (1,1,0,1,2,0,0,8,5,2);
INSERT INTO workers VALUES ('3acd1d38-fab7-4de1-8e4e-79aa397c0490','host','0.1.0','[{"device":"cpu","device_kind":"cpu","device_name":"","memory_bytes":12638255104,"slot":0},{"device":"cpu","device_kind":"cpu","device_name":"","memory_bytes":12638255104,"slot":1}]',2,'{}','offline',1795270473383,NULL,'');
INSERT INTO attempts VALUES (1,1,1,7774921052831865067,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',0,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',7,0,'{}','succeeded',NULL,NULL,1795270471666,1795270472530);
INSERT INTO attempts VALUES (2,2,1,-1539012924710536743,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',1,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',7,0,'{}','succeeded',NULL,NULL,1795270471666,1795270472488);
INSERT INTO attempts VALUES (3,3,1,-8137762391867919976,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',1,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',2,0,'{}',NULL,NULL,NULL,1795270472489,NULL);
INSERT INTO curves VALUES (1,0,2.1265227794647216796,7,64,2.1364593505859375,4,32,0.0010000000000000000208,0.0042057249956997111439);
INSERT INTO curves VALUES (1,1,2.1179921627044677734,11,64,2.1352174282073974609,5,32,0.0005000000000000000104,0.0025000850000651553273);
INSERT INTO curves VALUES (2,0,2.092649698257446289,9,64,2.1450891494750976562,3,32,0.0010000000000000000208,0.0042435129944351501762);
INSERT INTO curves VALUES (2,1,2.078268289566040039,9,64,2.1426436901092529296,2,32,0.0005000000000000000104,0.0021817450033267959952);
INSERT INTO staged_epochs VALUES (1,3,0,2.0903367996215820312,11,64,2.1006908416748046875,5,32,0.0010000000000000000208,0.004044663997774478048);
INSERT INTO analyses VALUES (1,2,'head_ablation',2,'{"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"}',2,2,2,2,32,0.0013428470000000000943,NULL,1795270472429,2.1426435895264148712,0.125);
INSERT INTO analyses VALUES (2,2,'layer_ablation',1,'{"data":"test","max_examples":0,"method":"zero"}',2,NULL,NULL,NULL,NULL,0.0014003719999999999883,'{"total":32,"intact_correct":2,"intact_nll":2.142643589526415,"chance":0.125,"correct":[3,5],"lost":[0,0],"gained":[1,3],"nll":[2.1206227242946625,2.1404374539852142],"nll_standard_error":[0.009355356451323344,0.014691510952101014]}',1795270472429,NULL,NULL);
INSERT INTO analyses VALUES (3,1,'head_ablation',2,'{"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"}',1,2,2,5,32,0.0014005739999999999162,NULL,1795270472471,2.1352175623178482055,0.125);
INSERT INTO analyses VALUES (4,1,'layer_ablation',1,'{"data":"test","max_examples":0,"method":"zero"}',1,NULL,NULL,NULL,NULL,0.0022699299999999998644,'{"total":32,"intact_correct":5,"intact_nll":2.135217562317848,"chance":0.125,"correct":[4,2],"lost":[2,3],"gained":[1,0],"nll":[2.1364136524498463,2.160755228251219],"nll_standard_error":[0.013051033953789882,0.012911778512883932]}',1795270472474,NULL,NULL);
INSERT INTO head_ablation VALUES (1,0,0,3,0,1,0.030757843257858637209,2.1344505064189434051,0.010074063128322933297);
INSERT INTO head_ablation VALUES (1,0,1,3,0,1,0.030757843257858637209,2.129498552531003952,0.0085131353651090382883);
INSERT INTO head_ablation VALUES (1,1,0,2,0,0,0.0,2.1422831267118453979,0.0081963019819355255324);
INSERT INTO head_ablation VALUES (1,1,1,5,0,3,0.051526976399503592041,2.1405706517398357391,0.01043049742474040642);
INSERT INTO head_ablation VALUES (3,0,0,3,3,1,0.061515686515717274418,2.141290362924337387,0.0098606984276885818047);
INSERT INTO head_ablation VALUES (3,0,1,4,2,1,0.053843940437852427782,2.1301990337669849395,0.014609895961883195836);
INSERT INTO head_ablation VALUES (3,1,0,2,3,0,0.051526976399503592041,2.1422982104122638702,0.0069031134919918819142);
INSERT INTO head_ablation VALUES (3,1,1,2,3,0,0.051526976399503592041,2.1529445312917232513,0.0087640871845712491755);
INSERT INTO deposit_indices VALUES (1,-1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (3,-1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (3,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (3,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO artifacts VALUES (1,'weights.safetensors','72f7b9f8f5fa5feaf0997f5477d472c59fda40c1f85f9b71e080e6eed33ac2ea',10416);
INSERT INTO artifacts VALUES (2,'weights.safetensors','93ec0650ffde8d0df225fbc11ed59db1c10836e3905f0ce27d956c61d62328dd',10416);
INSERT INTO logs VALUES (1,0,CAST('epoch 0' || char(10) || 'epoch 1' || char(10) AS BLOB));
INSERT INTO logs VALUES (3,0,CAST('epoch 0' || char(10) AS BLOB));
COMMIT;
