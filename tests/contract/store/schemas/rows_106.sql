-- The rows of a database of schema 106: those of rows_101.sql as later schemas have them, and three
-- principals.
BEGIN;
INSERT INTO configurations VALUES (1,'{"format":1,"model":{"activation":"relu","attention_bias":true,"d_ff":16,"d_model":8,"dropout":0.1,"dropout_sites":["attention","output","ffn"],"final_norm":true,"heads":2,"key_padding":"masked","kv_source":"self","layer_norm_eps":0.00001,"layers":2,"mask":"causal","max_len":16,"readout":"masked_mean"},"pe":{"name":"nope","version":1},"seed":,"task":{"data_seed":,"definition":"clean","label_space":"exact","length":16,"max_distance":8,"name":"distance","scored_classes":"all","split":"disjoint","test_examples":32,"train_examples":64,"version":1,"vocabulary":40},"train":{"batch_size":64,"beta1":0.98,"beta2":0.9,"epochs":2,"epsilon":1e-8,"lr":0.001,"schedule":"cosine","warmup_fraction":0.06,"weight_decay":0.00001}}',2.28738569584781936683e+00);
INSERT INTO jobs VALUES (1,'4f345309f3e3b3d5cfde9a951f693ffa703dc86058267f2212074a104bf05632',1,'nope','nope','distance','clean',0,'any',0,'succeeded',0,2,1,0,0,2,11,64,5,32,5,32,0.02099969,'cpu',NULL,1795270470959,1795270472530,1,'{"threads":1,"micro_batch":0,"packing":1}',1,1,1,2.11799216270446777343e+00,2.13521742820739746093e+00,0,NULL,NULL,NULL);
INSERT INTO jobs VALUES (2,'fe374146b0f4123ad031b43bcac63f09cac15766413292725c7df08699ebf651',1,'nope','nope','distance','clean',1,'any',0,'succeeded',0,2,1,0,0,2,9,64,2,32,3,32,0.013162171,'cpu',NULL,1795270470959,1795270472488,1,'{"threads":1,"micro_batch":0,"packing":1}',1,1,1,2.07826828956604,2.14264369010925292968e+00,0,NULL,NULL,NULL);
INSERT INTO jobs VALUES (3,'e740ec3d1e42110c9829dc5080b602a9d06f81f7dc33a1b119f588c6700024cc',1,'nope','nope','distance','clean',2,'any',0,'running',0,2,1,0,0,1,11,64,5,32,5,32,0.012879803,'cpu',NULL,1795270470959,NULL,0,'{"threads":1,"micro_batch":0,"packing":1}',1,1,1,2.09033679962158203125e+00,2.1006908416748046875e+00,0,NULL,NULL,NULL);
INSERT INTO jobs VALUES (4,'8fb2c8aa0f02aa1770b570a23edb0c033e473b96dffe3ad28b8f8fc3a3e9bb2e',1,'nope','nope','distance','clean',3,'any',0,'queued',0,2,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795270470959,NULL,0,NULL,1,1,1,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO sweeps VALUES (1,'kept','clean','name: kept
protocol: clean
pe: [nope]
task: {name: distance, length: 16, vocabulary: 40, train_examples: 64, test_examples: 32}
seed: [0, 1, 2, 3]
model: {d_model: 8, d_ff: 16, heads: 2, layers: 2, max_len: 16, dropout: 0.1}
train: {epochs: 2, batch_size: 64, lr: 1e-3}
analyses: [head_ablation, layer_ablation]
','kept.yaml','[]','1e82b331-b776-4774-8aee-8c7a0e0f44a2','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]','{"device":"any","memory_bytes":0}',0,0,'active',4,4,4,0,0,0,1795270470959,0,0,0,0,NULL,'[]','',0,0,'');
INSERT INTO sweep_jobs VALUES (1,0,1,1,NULL);
INSERT INTO sweep_jobs VALUES (1,1,2,1,NULL);
INSERT INTO sweep_jobs VALUES (1,2,3,1,NULL);
INSERT INTO sweep_jobs VALUES (1,3,4,1,NULL);
INSERT INTO sweep_counts VALUES (1,1,0,1,2,0,0,8,5,2);
INSERT INTO workers VALUES ('3acd1d38-fab7-4de1-8e4e-79aa397c0490','host','0.1.0','[{"device":"cpu","device_kind":"cpu","device_name":"","memory_bytes":12638255104,"slot":0},{"device":"cpu","device_kind":"cpu","device_name":"","memory_bytes":12638255104,"slot":1}]',2,'{}','offline',1795270473383,NULL,'','');
INSERT INTO attempts VALUES (1,1,1,7774921052831865067,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',0,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',7,0,'{}','succeeded',NULL,NULL,1795270471666,1795270472530,'');
INSERT INTO attempts VALUES (2,2,1,-1539012924710536743,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',1,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',7,0,'{}','succeeded',NULL,NULL,1795270471666,1795270472488,'');
INSERT INTO attempts VALUES (3,3,1,-8137762391867919976,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',1,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',2,0,'{}',NULL,NULL,NULL,1795270472489,NULL,'');
INSERT INTO curves VALUES (1,0,2.12652277946472167968e+00,7,64,2.1364593505859375e+00,4,32,0.001,4.20572499569971114397e-03,NULL,NULL);
INSERT INTO curves VALUES (1,1,2.11799216270446777343e+00,11,64,2.13521742820739746093e+00,5,32,0.0005,2.50008500006515532732e-03,NULL,NULL);
INSERT INTO curves VALUES (2,0,2.09264969825744628906e+00,9,64,2.14508914947509765625e+00,3,32,0.001,0.00424351299443515,NULL,NULL);
INSERT INTO curves VALUES (2,1,2.07826828956604,9,64,2.14264369010925292968e+00,2,32,0.0005,2.18174500332679599523e-03,NULL,NULL);
INSERT INTO staged_epochs VALUES (1,3,0,2.09033679962158203125e+00,11,64,2.1006908416748046875e+00,5,32,0.001,4.04466399777447804808e-03,NULL,NULL);
INSERT INTO analyses VALUES (1,2,'head_ablation',2,'{"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"}',2,2,2,2,32,0.001342847,NULL,1795270472429,2.14264358952641487121e+00,0.125);
INSERT INTO analyses VALUES (2,2,'layer_ablation',1,'{"data":"test","max_examples":0,"method":"zero"}',2,NULL,NULL,NULL,NULL,0.001400372,'{"total":32,"intact_correct":2,"intact_nll":2.142643589526415,"chance":0.125,"correct":[3,5],"lost":[0,0],"gained":[1,3],"nll":[2.1206227242946625,2.1404374539852142],"nll_standard_error":[0.009355356451323344,0.014691510952101014]}',1795270472429,NULL,NULL);
INSERT INTO analyses VALUES (3,1,'head_ablation',2,'{"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"}',1,2,2,5,32,0.001400574,NULL,1795270472471,2.13521756231784820556e+00,0.125);
INSERT INTO analyses VALUES (4,1,'layer_ablation',1,'{"data":"test","max_examples":0,"method":"zero"}',1,NULL,NULL,NULL,NULL,0.00226993,'{"total":32,"intact_correct":5,"intact_nll":2.135217562317848,"chance":0.125,"correct":[4,2],"lost":[2,3],"gained":[1,0],"nll":[2.1364136524498463,2.160755228251219],"nll_standard_error":[0.013051033953789882,0.012911778512883932]}',1795270472474,NULL,NULL);
INSERT INTO head_ablation VALUES (1,0,0,3,0,1,3.07578432578586372092e-02,2.13445050641894340515e+00,1.0074063128322933297e-02);
INSERT INTO head_ablation VALUES (1,0,1,3,0,1,3.07578432578586372092e-02,2.12949855253100395202e+00,8.51313536510903828835e-03);
INSERT INTO head_ablation VALUES (1,1,0,2,0,0,0.0,2.14228312671184539794e+00,8.19630198193552553243e-03);
INSERT INTO head_ablation VALUES (1,1,1,5,0,3,5.15269763995035920411e-02,2.14057065173983573913e+00,1.04304974247404064202e-02);
INSERT INTO head_ablation VALUES (3,0,0,3,3,1,6.15156865157172744185e-02,2.14129036292433738708e+00,9.8606984276885818047e-03);
INSERT INTO head_ablation VALUES (3,0,1,4,2,1,5.38439404378524277827e-02,2.13019903376698493957e+00,1.46098959618831958362e-02);
INSERT INTO head_ablation VALUES (3,1,0,2,3,0,5.15269763995035920411e-02,2.14229821041226387023e+00,6.90311349199188191427e-03);
INSERT INTO head_ablation VALUES (3,1,1,2,3,0,5.15269763995035920411e-02,2.15294453129172325134e+00,0.00876408718457125);
INSERT INTO deposit_indices VALUES (1,-1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (3,-1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (3,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO deposit_indices VALUES (3,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO artifacts VALUES (1,'weights.safetensors','72f7b9f8f5fa5feaf0997f5477d472c59fda40c1f85f9b71e080e6eed33ac2ea',10416);
INSERT INTO artifacts VALUES (2,'weights.safetensors','93ec0650ffde8d0df225fbc11ed59db1c10836e3905f0ce27d956c61d62328dd',10416);
INSERT INTO logs VALUES (1,0,X'65706F636820300A65706F636820310A');
INSERT INTO logs VALUES (3,0,X'65706F636820300A');
INSERT INTO principals VALUES ('alice','submitter','aa01',NULL,0,NULL,1795270470000,0,0,2.0,8,0,0.0,0,12.5);
INSERT INTO principals VALUES ('boss','operator','bb02','bb01',1795270480000,NULL,1795270470001,1895270470001,0,0.0,0,0,0.0,0,0.0);
INSERT INTO principals VALUES ('gpu01','worker',NULL,NULL,0,'pelab://worker/gpu01',1795270470002,0,1,0.0,0,0,0.0,0,0.0);
COMMIT;
